"""Settings against each other: blocks, evidence, verdicts, outputs."""
