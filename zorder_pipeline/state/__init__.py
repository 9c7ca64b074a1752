"""The state: Delta tables about relayouts, approvals and costs, the file STOP, and what all of these are written by."""
