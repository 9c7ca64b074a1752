"""From log files to the state: formats, which lines are new, exactly once, and what is stored."""
