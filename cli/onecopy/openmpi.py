# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI's launcher: what names other nodes to it, and how it is told which variables their ranks are to have.

There are two ways: `-x`, and the MCA parameter mca_base_env_list, which may stand in the command, in a variable, in a
file of `--tune`, in the user's parameter file or in the site's; the first of these that has it is heeded. Open MPI 4
aborts where both ways meet, in whatever places. So a list that is there is made longer; else `-x` is added where there
is one; and else the parameter's variable is set. Variables that a file of `--app` names leave no way.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

LIST = "mca_base_env_list"
DELIMITER = "mca_base_env_list_delimiter"
FILES = "mca_base_param_files"
VARIABLE = "OMPI_MCA_"
SEPARATOR = ";"
USERS = (".openmpi/mca-params.conf", ".prte/mca-params.conf")  # below the home directory
SITES = ("openmpi-mca-params.conf", "prte-mca-params.conf")  # below the prefix's etc
HOSTFILES = ("openmpi-default-hostfile", "prte-default-hostfile")
#: Of distributions, whose prefix is /usr or below it.
SYSTEM_ETC = "/etc"
HOSTS = re.compile(r"--?(H|host|hostfile|default-hostfile|machinefile|rf|rankfile|dvm|dvm-uri|hnp)(=.*)?")
HOST_PARAMETERS = re.compile(r"((orte|prte)_default_hostfile|rmaps_rank_file_path)\b")


class DoubtError(Exception):
    """The variables cannot be handed on without taking something from the user; the text says why."""


def _options(words: Sequence[str], *names: str) -> Iterator[str]:
    """The values of options of a launcher's command."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.startswith("-") and name.lstrip("-") in names:
            yield from [value] if equals else words[i + 1 : i + 2]


def _places(words: Sequence[str], parameter: str) -> Iterator[int]:
    """Where the values of a parameter stand: --mca NAME VALUE."""
    for i, word in enumerate(words[:-2]):
        if re.fullmatch(r"--?[go]?mca", word) and words[i + 1] == parameter:
            yield i + 2


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _words(path: Path) -> list[str]:
    """Of a file that holds options."""
    text = re.sub(r"^\s*#.*$", "", _text(path), flags=re.MULTILINE)
    try:
        return shlex.split(text)
    except ValueError:  # quotes that do not end
        return text.split()


def _tuned(words: Sequence[str]) -> list[str]:
    """What the files of --tune say."""
    files = [name for value in _options(words, "tune") for name in value.split(",")]
    return [word for name in files for word in _words(Path(name))]


def _etc(launcher: str, env: Mapping[str, str]) -> list[Path]:
    """Where the site's files may be."""
    prefixes = [Path(env["OPAL_PREFIX"])] if env.get("OPAL_PREFIX") else []
    if found := shutil.which(launcher):
        prefixes += [Path(found).parent.parent, Path(found).resolve().parent.parent]
    places = [prefix / "etc" for prefix in prefixes]
    if any(str(prefix) == "/" or prefix.is_relative_to("/usr") for prefix in prefixes):
        places += sorted(Path(SYSTEM_ETC).glob("openmpi*"))
    return list(dict.fromkeys(places))


def _parameter_files(launcher: str, env: Mapping[str, str]) -> list[Path]:
    """First those whose word counts more."""
    if named := env.get(VARIABLE + FILES):
        return [Path(name) for name in re.split(r"[,:]", named) if name]
    home = [Path(env["HOME"]) / name for name in USERS] if env.get("HOME") else []
    return home + [place / name for place in _etc(launcher, env) for name in SITES]


def _in_files(files: Sequence[Path], parameter: str) -> str:
    """What parameter files say; the last word of a file counts."""
    for path in files:
        if said := re.findall(rf"^[ \t]*{parameter}[ \t]*=[ \t]*(.*?)[ \t]*$", _text(path), re.MULTILINE):
            return str(said[-1])
    return ""


def _said(command: Sequence[str], at: int, env: Mapping[str, str], parameter: str) -> str:
    """A parameter's value, "" where nothing sets it."""
    tuned = _tuned(command[at:])
    in_words = (command[at + place] for place in _places(command[at:], parameter))
    in_tuned = (tuned[place] for place in _places(tuned, parameter))
    said = next(in_words, "") or env.get(VARIABLE + parameter) or next(in_tuned, "")
    return said or _in_files(_parameter_files(command[at], env), parameter)


def _names_variables(words: Sequence[str]) -> bool:
    return any(word in ("-x", "--x") for word in words)


def has_hosts(command: Sequence[str], at: int, env: Mapping[str, str]) -> bool:
    """Whether the launcher at command[at] is told of hosts, by its words or in a file."""
    words = [*command[at:], *_tuned(command[at:])]
    for name in _options(command[at:], "app"):
        words += _words(Path(name))
    if any(HOSTS.fullmatch(word) or HOST_PARAMETERS.search(word) for word in words):
        return True
    if any(HOST_PARAMETERS.search(name) for name in env):
        return True
    settings = (line for path in _parameter_files(command[at], env) for line in _text(path).splitlines())
    if any(HOST_PARAMETERS.match(line.strip()) for line in settings):
        return True
    hostfiles = (_text(place / name) for place in _etc(command[at], env) for name in HOSTFILES)
    return any(re.search(r"^[ \t]*[^#\s]", text, re.MULTILINE) for text in hostfiles)


def _refuse_doubtful(words: Sequence[str]) -> None:
    """What is named in a file of --app, and what stands beside it: Open MPI 4 heeds no `-x` before --app."""
    for name in _options(words, "app"):
        if _names_variables(said := _words(Path(name))) or LIST in said or _names_variables(words):
            raise DoubtError(f"the ranks' variables are named for {name} (--app)")


def carry(
    command: Sequence[str], at: int, env: Mapping[str, str], names: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """A launch.Carrier. DoubtError where there is no way that leaves the user's own as it is."""
    words = list(command)
    _refuse_doubtful(words[at:])
    before = _said(words, at, env, LIST)
    if not before and (_names_variables(words[at:]) or _names_variables(_tuned(words[at:]))):
        flags = [word for name in names for word in ("-x", f"{name}={env[name]}")]
        return words[: at + 1] + flags + _after_colons(words[at + 1 :], flags), dict(env)
    if _said(words, at, env, DELIMITER) not in ("", SEPARATOR):  # which Open MPI 5 does not know
        raise DoubtError(f"{DELIMITER} is set, which versions of Open MPI read in different ways")
    longer = SEPARATOR.join(filter(None, [before.rstrip(SEPARATOR), *_assignments(env, names)]))
    if (place := next(_places(words[at:], LIST), None)) is not None:
        words[at + place] = longer
        return words, dict(env)
    return words, {**env, VARIABLE + LIST: longer}


def _assignments(env: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """A value that holds the separator cannot be said there."""
    return [f"{name}={env[name]}" for name in names if SEPARATOR not in env[name]]


def _after_colons(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    """`:` begins another application context, with options of its own."""
    return [part for word in words for part in ([word, *flags] if word == ":" else [word])]
