"""Whether a plan is carried out: the gate, budgets and approvals."""
