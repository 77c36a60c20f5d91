"""Find names that look alike: two names with the same skeleton look the same to a reader (B1)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# Letters of other scripts that common fonts draw like Latin ones (from Unicode's confusables for identifiers).
_PAIRS = (
    "аa еe оo рp сc уy хx ѕs іi їi јj ԁd ԛq ԝw һh ѵv ӏl ьb кk мm нh тt вb гr пn "
    "АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ЅS ІI ЈJ ԌG ԚQ ԜW ѴV ҮY "
    "αa βb γy εe ηn ιi κk νv οo ρp σo τt υu χx ωw "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX "
    "աw եe հh ոn սu օo ցg ղn ɑa ɡg ɩi ɪi ʏy ʀr ʟl ʜh ɴn ʙb ɢg ꜱs ᴀa ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz "
    "ıi ȷj łl øo đd ħh ŧt ƅb ǀl ſf ѡw ѻo"
)
_TABLE = {ord(pair[0]): pair[-1] for pair in _PAIRS.split()}


def skeleton(name: str) -> str:
    """Return the name as a reader sees it: compatibility forms decomposed, accents dropped, look-alike letters Latin."""
    if name.isascii():
        return name
    # Accents are dropped before, too: normalising sorts those of one letter, which takes quadratic time.
    unfolded = unicodedata.normalize("NFKD", _without_accents(name.translate(_TABLE)))
    return _without_accents(unfolded.translate(_TABLE))


def _without_accents(name: str) -> str:
    return "".join(letter for letter in name if not unicodedata.combining(letter))


def find_confusable(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two different names that look alike, or None. Two ASCII names never do."""
    seen: dict[str, str] = {}
    non_ascii: list[str] = []
    for name in names:
        if name.isascii():
            seen[name] = name
        else:
            non_ascii.append(name)
    for name in non_ascii:
        other = seen.setdefault(skeleton(name), name)
        if other != name:
            return other, name
    return None
