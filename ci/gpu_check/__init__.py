"""GPU tests on a machine that cannot build: packed where the compilers are, run where the GPU is."""
