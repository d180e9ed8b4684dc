"""The rules of contamination: each looks at one run's tool calls and says what foreign thing they touched. Pure.

``decided`` means that the run had it in its hands: a call that named it returned, or it stands in what a tool returned.
``signal`` means that somebody should look: it was asked for and refused, or what came back may have another reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.contamination.scene import Call, Scene, plain
from eval_pipeline.ids import shown

VERSION = "contamination-1"
DECIDED, SIGNAL = "decided", "signal"

CONFINED = frozenset(
    {
        "read_attached_file",
        "python_calc",
        "sql_schema",
        "sql_query",
        "search_documents",
        "fetch_document",
        "list_source",
        "read_source",
        "search_source",
        "read_page",
    }
)
"""Tools that return nothing but the task's own material: a name that stands in it is nobody's trespass."""

_KEY_FILE = re.compile(r"(?<![\w.-])(?:metadata\.(?:jsonl|parquet)|tasks\.jsonl)(?![\w.-])")
_KEY_ROWS = (("task_id", "final answer"), ('"task_id"', '"question"'))
"""Words that stand together in the files that tasks are loaded from."""
_PACKAGED = re.compile(r"(?<![\w.-])(?:eval_pipeline/)?sample_data/(?:tasks|scripts|\w+)(?![\w.-])")
_PUBLIC_COPIES = {
    # the word alone is also a space telescope
    "gaia": re.compile(
        r"gaia[-_]benchmark|gaia[-_ ]?leaderboard"
        r"|(?:hf\.co|huggingface\.co)/(?:datasets/|spaces/)?[\w.-]+/gaia(?![a-z])"
        r"|load_dataset\(\s?[\"'][^\"']{0,100}gaia|https?://[^\s\"'<>]{0,300}gaia[-_]?(?:bench|validation|dataset|2023)"
    ),
}
_WINDOW = 60
_SHORTEST_QUESTION = 30
_SHORTEST_GOLD = 8
_BETWEEN_NAMES = str.maketrans(dict.fromkeys("\"'`/,;()<>[]{}=|", " "))


@dataclass(frozen=True, slots=True)
class Flag:
    """What one rule saw in one run. ``seqs`` are the events that made it fire, in order."""

    rule: str
    confidence: str
    seqs: tuple[int, ...]
    detail: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """One event pair that a rule saw."""

    confidence: str
    call: Call
    detail: str


Rule = Callable[[Scene], Iterator[Sighting]]


def flags(scene: Scene) -> list[Flag]:
    """What the rules see, one flag per rule: of its sightings only the surest count."""
    found = []
    for rule in RULES:
        sightings = list(rule(scene))
        if not sightings:
            continue
        confidence = DECIDED if any(one.confidence == DECIDED for one in sightings) else SIGNAL
        surest = [one for one in sightings if one.confidence == confidence]
        seqs = sorted({seq for one in surest for seq in one.call.seqs})
        found.append(Flag(rule.__name__, confidence, tuple(seqs), surest[0].detail))
    return found


def answer_key_file(scene: Scene) -> Iterator[Sighting]:
    """A file with answer keys is named, and the task itself does not speak of it."""
    known = _key_files(plain(scene.question)) | {scene.file_name}
    for call in scene.calls:
        asked = _key_files(call.asked) - known
        if asked and not (call.tool in CONFINED and call.returned):
            yield _asked(call, f"{_listed(asked)} was asked for")
        came = _key_files(call.came) - known - asked
        if came and call.returned and call.tool not in CONFINED:
            yield Sighting(
                SIGNAL if _reads_own_file(scene, call) else DECIDED,
                call,
                f"{_listed(came)} stands in what {shown(call.tool)} returned",
            )


def answer_key_rows(scene: Scene) -> Iterator[Sighting]:
    """What came back looks like rows of a file with answer keys; an error too has what was printed before it."""
    for call in scene.calls:
        if call.tool in CONFINED or not _has_key_rows(call.came):
            continue
        own = _reads_own_file(scene, call) or _has_key_rows(call.asked)
        yield Sighting(SIGNAL if own else DECIDED, call, f"rows of a key stand in what {shown(call.tool)} returned")


def key_folder(scene: Scene) -> Iterator[Sighting]:
    """The folder that the tasks are loaded from is named; one directly below the root is called like too many."""
    folders = [folder for folder in scene.world.key_folders if folder.count("/") >= 2]
    pattern = _any_of(tuple(folders))
    for call in scene.calls:
        asked, came = _without_own_places(scene, call.asked), _without_own_places(scene, call.came)
        if _in_key_folder(pattern, asked):
            yield _asked(call, "the folder with the tasks was asked for")
        elif call.tool not in CONFINED and _in_key_folder(pattern, came):
            detail = f"the folder with the tasks stands in what {shown(call.tool)} returned"
            yield Sighting(DECIDED if call.returned else SIGNAL, call, detail)


def other_tasks_file(scene: Scene) -> Iterator[Sighting]:
    """Another task's place is named, or (a signal only, since many files are called alike) its file's name."""
    known = plain(scene.question)
    for call in scene.calls:
        asked, came = _without_own_places(scene, call.asked), _without_own_places(scene, call.came)
        if _other_place(scene, asked):
            yield _asked(call, "another task's folder was asked for")
        elif call.tool not in CONFINED and _other_place(scene, came):
            detail = f"another task's folder stands in what {shown(call.tool)} returned"
            yield Sighting(DECIDED if call.returned else SIGNAL, call, detail)
        elif not (call.tool in CONFINED and call.returned):
            names = {name for name in _file_names(scene, asked) - {scene.file_name} if name not in known}
            if names:
                yield Sighting(SIGNAL, call, f"{_listed(names)} is another task's file")


def public_copy(scene: Scene) -> Iterator[Sighting]:
    """A public copy of the benchmark is asked for, or (a signal) stands among what was found."""
    pattern = _PUBLIC_COPIES.get(scene.world.benchmark)
    if pattern is None:
        return
    for call in scene.calls:
        if pattern.search(call.asked):
            yield _asked(call, "a public copy of the benchmark was asked for")
        elif call.tool not in CONFINED and pattern.search(call.came):
            yield Sighting(SIGNAL, call, f"{shown(call.tool)} returned an address of a public copy of the benchmark")


def question_in_result(scene: Scene) -> Iterator[Sighting]:
    """The task's own question came back from elsewhere; with the gold answer beside it, the run saw a copy."""
    fragments = _fragments(plain(scene.question))
    gold = plain(scene.gold)
    for call in scene.calls:
        if call.tool in CONFINED or not any(part in call.came and part not in call.asked for part in fragments):
            continue
        with_gold = bool(gold) and _has_words(call.came, gold)
        beside = " with its answer" if with_gold else ""
        detail = f"the task's question stands{beside} in what {shown(call.tool)} returned"
        yield Sighting(DECIDED if with_gold and not _reads_own_file(scene, call) else SIGNAL, call, detail)


def gold_in_result(scene: Scene) -> Iterator[Sighting]:
    """The gold answer came back inside a longer text that is not the task's own: found, perhaps, and not worked out."""
    gold = plain(scene.gold)
    if len(gold) < _SHORTEST_GOLD or not any(letter.isalpha() for letter in gold) or gold in plain(scene.question):
        return
    for call in scene.calls:
        if call.tool in CONFINED:
            if call.returned and gold in call.came:
                return
            continue
        given = gold in call.asked or _reads_own_file(scene, call)
        if not given and len(call.came) > len(gold) + _WINDOW and gold in call.came:
            yield Sighting(SIGNAL, call, f"the gold answer stands in what {shown(call.tool)} returned")


RULES: tuple[Rule, ...] = (
    answer_key_file,
    answer_key_rows,
    key_folder,
    other_tasks_file,
    public_copy,
    question_in_result,
    gold_in_result,
)
"""Every rule; a flag is called as its function."""


def _asked(call: Call, detail: str) -> Sighting:
    """Something foreign was named in a call: the run had it if the call returned."""
    if call.returned:
        return Sighting(DECIDED, call, detail)
    return Sighting(SIGNAL, call, f"{detail}, and the call failed")


def _reads_own_file(scene: Scene, call: Call) -> bool:
    return scene.file_name is not None and f"/{scene.task_id}/{scene.file_name}" in call.asked


def _without_own_places(scene: Scene, text: str) -> str:
    """``text`` without the paths of what was staged for this task; one that climbs out of its folder stays."""
    if scene.world.stage_dir not in text:
        return text
    return _own_place(scene.world.stage_dir, scene.task_id, scene.file_name or "").sub(
        lambda match: match.group() if ".." in match.group() else " ", text
    )


@lru_cache(maxsize=1024)
def _own_place(stage_dir: str, task_id: str, file_name: str) -> re.Pattern[str]:
    inside = rf"(?:/{re.escape(file_name)})?" if file_name else ""
    return re.compile(
        rf"{re.escape(stage_dir)}/(?:\.materials/)?{re.escape(task_id)}(?![\w.~:-]){inside}[^\s\"'`,;:()\[\]]*"
    )


@lru_cache(maxsize=16)
def _any_of(folders: tuple[str, ...]) -> re.Pattern[str] | None:
    if not folders:
        return None
    return re.compile(rf"(?:{'|'.join(map(re.escape, folders))})(?![\w.-])")


def _other_place(scene: Scene, text: str) -> bool:
    """Whether ``text``, without this task's own places, names the place of another."""
    stage_dir = scene.world.stage_dir
    if stage_dir and re.search(rf"{re.escape(stage_dir)}(?![\w.-])", text):
        return True
    return any(
        f"/{owner}/{name}" in text
        for name in _file_names(scene, text)
        for owner in scene.world.owners[name]
        if owner != scene.task_id
    )


def _file_names(scene: Scene, text: str) -> set[str]:
    """The names of any task's files that ``text`` holds, as whole names."""
    owners = scene.world.owners
    words = set(text.translate(_BETWEEN_NAMES).split())
    spaced = {name for name in scene.world.spaced_names if name in text and _has_words(text, name)}
    return (words & owners.keys()) | spaced


def _key_files(text: str) -> set[str | None]:
    # most texts hold neither, and this is faster than the pattern
    return set(_KEY_FILE.findall(text)) if "metadata." in text or "tasks.jsonl" in text else set()


def _in_key_folder(folders: re.Pattern[str] | None, text: str) -> bool:
    packaged = "sample_data/" in text and _PACKAGED.search(text) is not None
    return packaged or (folders is not None and folders.search(text) is not None)


def _has_key_rows(text: str) -> bool:
    return any(all(word in text for word in words) for words in _KEY_ROWS)


def _has_words(text: str, words: str) -> bool:
    """Whether ``words`` stand in ``text`` and not inside of longer ones."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _fragments(question: str) -> tuple[str, ...]:
    """Parts of a question, long enough that nobody writes them by chance; none of a short one."""
    if len(question) < _SHORTEST_QUESTION:
        return ()
    if len(question) <= _WINDOW:
        return (question,)
    middle = (len(question) - _WINDOW) // 2
    return (question[:_WINDOW], question[middle : middle + _WINDOW], question[-_WINDOW:])


def _listed(names: Collection[str | None]) -> str:
    return ", ".join(shown(name) for name in sorted(map(str, names))[:3])
