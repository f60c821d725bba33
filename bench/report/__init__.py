"""`make bench`: runs the benchmarks, joins their results, and prints one table with baselines and targets.
ci/bench starts it."""
