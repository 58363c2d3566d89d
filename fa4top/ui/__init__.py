"""The screens. They read snapshots and send commands; they never touch a GPU."""
