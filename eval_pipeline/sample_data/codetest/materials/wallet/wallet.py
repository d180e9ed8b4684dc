"""동전으로 거스름돈을 내준다."""


def change(amount, coins):
    """amount원을 coins(동전의 값 → 개수)로 내줄 때 쓰는 동전의 사전. 큰 동전부터 쓴다.

    내줄 수 없으면 None이다. 0원은 빈 사전이다. 음수이면 ValueError이다. coins는 바뀌지 않는다.
    """
    if amount < 0:
        raise ValueError("금액은 음수일 수 없습니다")
    used = {}
    for value in sorted(coins, reverse=True):
        count = min(amount // value, coins[value])
        if count > 0:
            used[value] = count
            amount -= value * count
    if amount == 0:
        return used
    return None
