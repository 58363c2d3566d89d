"""How long tests wait for what must come."""

PATIENCE_S = 240.0  # after this a test has failed, however loaded the machine is; nothing sleeps it through
