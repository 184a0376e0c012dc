"""The parts that all benchmark programs share: arguments, results, timing, data sets, scores and tables."""
