"""`dntm COMMAND ...`: parses the options of a command, runs it and reports errors.

Only the module of the given command is imported, so that --help is fast.
"""

import atexit
import difflib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Collection
from dataclasses import is_dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin, get_type_hints

# Name: (module:class, description)
COMMANDS = {
    "data build": ("data:Build", "build a dataset from a named corpus or from files"),
    "data join": ("data:Join", "join datasets into one with a shared vocabulary"),
    "data list": ("data:List", "list the named corpora and their licenses"),
    "data stats": ("data:Stats", "compare a dataset with Table 1 of the paper"),
    "data show": ("data:Show", "show an anonymized document"),
    "pretrain": ("train:Pretrain", "pretrain word embeddings and the context encoder"),
    "train": ("train:Train", "train a language model on a dataset"),
    "evaluate": ("evaluate:Evaluate", "score a dataset: perplexities or the cloze test"),
    "evaluate-meaning": ("evaluate_meaning:EvaluateMeaning", "test meanings of unknown words"),
    "export": ("export:Export", "export a trained model as a small folder"),
    "spelling": ("export:FitSpelling", "fit the string probabilities of a model on texts"),
    "reproduce": ("study:Reproduce", "train all models and write the paper's tables and figures"),
    "report": ("study:MakeReport", "write the report of a study from its finished runs"),
    "read": ("read:Read", "read a text: predicted words for its entities, surprisals"),
    "score": ("score:Score", "print the surprisal of every token in texts, as a table"),
    "continue": ("texts:Continue", "sample continuations of a text (experimental)"),
    "fill": ("texts:Fill", "rank words and entities for a gap in a sentence"),
    "serve": ("texts:Serve", "serve a local web page that reads texts"),
}
_SEVERAL = ("--entities", "--text-column", "--without")
"""Options with several values. A file may follow the values."""
_FLAGS = ("--summary", "--words")
"""Options of `dntm score` without a value."""
_NAME_WIDTH = 24
"""The widest option, with its values, that tyro prints next to its help text."""


def main(arguments: list[str] | None = None) -> None:
    """Run one command. Errors in the input are reported in one sentence, with exit code 1."""
    if arguments is not None or os.environ.get("WORLD_SIZE", "1") == "1":
        _run(arguments)
        return
    # Threads of torch.distributed that outlive the interpreter can abort a finished process
    code: object = 0
    try:
        _run(None)
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _run(arguments: list[str] | None) -> None:
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        # Skips the final garbage collection over all of PyTorch, which takes half a second
        atexit.register(gc.freeze)
        if sys.stderr and not sys.stderr.isatty():  # a log file gets two lines a minute
            os.environ.setdefault("TQDM_MININTERVAL", "30")
            os.environ.setdefault("TQDM_MAXINTERVAL", "30")
    name = next((n for n in (" ".join(words[:2]), " ".join(words[:1])) if n in COMMANDS), None)
    if name is None:
        _help(words)
    if sys.stdout is None:
        _fail("standard output is closed", 1)
    rest = words[len(name.split()) :]
    try:
        module, _, title = COMMANDS[name][0].partition(":")
        command = getattr(importlib.import_module(f"dntm.cli.{module}"), title)
        _parse(command, rest, f"dntm {name}").run()
        sys.stdout.flush()
    except (ValueError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _parse(command: Any, arguments: list[str], prog: str) -> Any:
    import tyro

    default = command.defaults(arguments) if hasattr(command, "defaults") else tyro.MISSING_NONPROP
    short = {"-h", "--help"}.intersection(arguments)
    shown = getattr(command, "main_options", None) if short else None
    _describe_options(command, shown)
    words = ["--help" if word == "--help-all" else word for word in _files_first(arguments)]
    # Help names one of --x and --no-x, the one that changes the default; both can be given
    pairs = (tyro.conf.FlagCreatePairsOff,) if "--help" in words or short else ()
    config = (tyro.conf.DisallowNone, *pairs)
    try:
        return tyro.cli(command, prog=prog, args=words, default=default, config=config)
    finally:
        if shown is not None:
            print(f"All options: {prog} --help-all")


def _files_first(arguments: list[str]) -> list[str]:
    """Move files that follow the values of an option in front of the option.

    `--entities none FILE` becomes `FILE --entities none`. Of the values of --text-column, only the
    last can be a file, and only if no file is given elsewhere: columns may have the names of files.
    """
    words = list(arguments)
    for option in ("--entities", "--text-column"):
        if words.count(option) > 1:
            raise ValueError(f"{option} is given twice, expected once, followed by all its values")
    for place in (i for i in reversed(range(len(words))) if words[i] in _SEVERAL):
        values = list(takewhile(lambda w: w == "-" or not w.startswith("-"), words[place + 1 :]))
        first = 1
        if words[place] == "--text-column":
            others = [*words[:place], *words[place + 1 + len(values) :]]
            pairs = pairwise(["--summary", *others])
            given = any(
                _is_file(w) for before, w in pairs if before[:2] != "--" or before in _FLAGS
            )
            first = max(1, len(values) - (not given))
        files = [word for word in values[first:] if _is_file(word)]
        kept = [*values[:first], *(word for word in values[first:] if word not in files)]
        words[place : place + 1 + len(values)] = [*files, words[place], *kept]
    return words


def _is_file(word: str) -> bool:
    return word == "-" or Path(word).exists()


def _options(command: Any) -> dict[str, tuple[Any, str]]:
    """The type and the docstring of each option."""
    from docstring_parser import parse_from_object

    classes = filter(is_dataclass, reversed(command.__mro__))
    options = [option for owner in classes for option in parse_from_object(owner).params]
    texts = {option.arg_name: " ".join((option.description or "").split()) for option in options}
    kinds = get_type_hints(command, include_extras=True).items()
    return {name: (Annotated[kind, name], texts.get(name, "")) for name, kind in kinds}


def _describe_options(command: Any, shown: Collection[str] | None) -> None:
    """Set the help texts of all options; if `shown` is given, hide all other options."""
    import tyro

    for name, (kind, text) in _options(command).items():
        of = kind.__origin__
        if is_dataclass(of):
            _describe_options(of, shown)
        elif text:
            choices, positional = _choices(kind), tyro.conf.Positional in kind.__metadata__
            is_long = len(f"--{name} {{{','.join(choices)}}}") > _NAME_WIDTH
            missing = is_long and not all(choice in text for choice in choices)
            listed = f" Choices: {', '.join(choices)}." if missing else ""
            replaced = not positional and (is_long or get_origin(of) is tuple)
            metavar = name.rpartition("_")[2].upper() if replaced else None
            note = tyro.conf.arg(help=text + listed, metavar=metavar, help_behavior_hint=_default)
            hidden = shown is not None and name not in shown and not positional
            command.__annotations__[name] = (
                Annotated[kind, note, tyro.conf.Suppress] if hidden else Annotated[kind, note]
            )


def _choices(kind: Any) -> list[str]:
    """The values of the Literal in a type, if there is one."""
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return next(filter(None, map(_choices, get_args(kind))), [])


def _default(value: str) -> str:
    # The name of a flag, --x or --no-x, tells its default
    hidden = value in ("", "''", "None", "True", "False")
    return "" if hidden else f"(default:\N{NO-BREAK SPACE}{value})"


def _help(words: list[str]) -> NoReturn:
    from dntm import __version__

    if words[:1] == ["--version"]:
        print(f"dntm {__version__}")
        sys.exit(0)
    asked = not words or words[-1] in ("-h", "--help")
    groups = {name.split()[0] for name in COMMANDS}
    shown = words[0] if words and words[0] in groups else ""
    lines = [f"  {n:<16}  {s}" for n, (_, s) in COMMANDS.items() if n.startswith(shown)]
    print(
        "usage: dntm COMMAND [OPTIONS]\n\n"
        "Dynamic Neural Text Model: a language model that builds embeddings of unknown\n"
        "words while it reads.\n\n"
        "commands:\n" + "\n".join(lines) + "\n\n"
        "options:\n"
        "  --version         print the version\n\n"
        "For the options of a command: dntm COMMAND --help",
        file=sys.stdout if asked else sys.stderr,
    )
    if asked:
        sys.exit(0)
    given = " ".join(words[:2] if shown else words[:1])
    near = difflib.get_close_matches(given, COMMANDS, n=1)
    _fail(f"unknown command {given!r}" + (f": did you mean dntm {near[0]}?" if near else ""), 2)


def _fail(message: str, code: int) -> NoReturn:
    print(f"dntm: error: {message}", file=sys.stderr)
    sys.exit(code)
