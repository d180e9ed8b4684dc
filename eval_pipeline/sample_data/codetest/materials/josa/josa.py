"""한국어 조사를 고른다."""

PAIRS = {"은": ("은", "는"), "이": ("이", "가"), "을": ("을", "를"), "와": ("과", "와")}


def has_final(word):
    """마지막 글자에 받침이 있으면 True, 한글이 아니면 False."""
    code = ord(word[-1]) - 0xAC00
    if code < 0 or code > 11171:
        return False
    return code % 28 != 0


def attach(word, particle):
    """낱말 뒤에 알맞은 조사를 붙인다.

    particle은 "은", "이", "을", "와", "로" 가운데 하나이다.
    "로"는 받침이 없거나 ㄹ 받침이면 "로", 그 밖에는 "으로"가 된다.
    빈 낱말이나 모르는 조사는 ValueError이다.
    """
    if not word:
        raise ValueError("빈 낱말에는 조사를 붙일 수 없습니다")
    if particle == "로":
        rieul = has_final(word) and (ord(word[-1]) - 0xAC00) % 28 == 8
        return word + ("으로" if has_final(word) and not rieul else "로")
    if particle not in PAIRS:
        raise ValueError("모르는 조사입니다: " + particle)
    with_final, without_final = PAIRS[particle]
    return word + (with_final if has_final(word) else without_final)
