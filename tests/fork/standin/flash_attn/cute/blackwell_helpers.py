"""Only the signature that tells the profiler's version: the test's writer fills in its parameters."""


def gemm_ptx_partial(op, acc_tmem, tCrA, tCrB, mbar_ptr=None):
    """Nothing."""
