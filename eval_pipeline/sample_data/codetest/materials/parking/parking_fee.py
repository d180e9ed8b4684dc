"""What parking costs."""

FREE_MINUTES = 15
HOURLY = 1500
DAY_LIMIT = 12000


def fee(minutes, resident=False):
    """The fee in won for parking ``minutes`` minutes.

    The first 15 minutes are free. After that every hour that has begun costs 1,500 won, at most 12,000 won for each
    day (24 hours) that has begun. Residents pay half. A negative number of minutes is a ValueError.
    """
    if minutes < 0:
        raise ValueError("minutes must not be negative")
    if minutes <= FREE_MINUTES:
        return 0
    days, rest = divmod(minutes, 24 * 60)
    hours = -(-rest // 60)
    total = days * DAY_LIMIT + min(hours * HOURLY, DAY_LIMIT)
    return total // 2 if resident else total
