"""Exit codes, documented in --help and the README."""

OK = 0
CHECK_FAILED = 1
USAGE = 2
NOTHING_TO_RUN_ON = 3
FAULT = 4
