"""`make bench`: runs the benchmarks, joins what they wrote, and prints one table of ours beside its baselines and targets. ci/bench starts it."""
