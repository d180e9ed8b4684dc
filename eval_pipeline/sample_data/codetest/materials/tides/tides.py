"""High and low water in a series of measured levels."""

from itertools import pairwise


def turning_points(levels):
    """The places of high and low water in ``levels``, as pairs of index and "high" or "low".

    A high is higher than both its neighbours, a low lower than both; the first and the last level are neither. Levels
    that stay the same for a while count as one, at the index where they begin.
    """
    kept = []
    for index, level in enumerate(levels):
        if not kept or level != kept[-1][1]:
            kept.append((index, level))
    points = []
    for (before, here), (_, after) in pairwise(pairwise(kept)):
        if here[1] > before[1] and here[1] > after[1]:
            points.append((here[0], "high"))
        elif here[1] < before[1] and here[1] < after[1]:
            points.append((here[0], "low"))
    return points


def tidal_range(levels):
    """The largest difference between a high and the low next to it; 0 where there are no two turning points."""
    points = turning_points(levels)
    best = 0
    for (first, _), (second, _) in pairwise(points):
        best = max(best, abs(levels[first] - levels[second]))
    return best
