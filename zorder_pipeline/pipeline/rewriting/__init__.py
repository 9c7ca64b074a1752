"""Carrying a plan out: relayouts, partitions, compaction, proofs that nothing else changed, and calibration."""
