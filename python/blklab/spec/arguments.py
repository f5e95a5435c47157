"""Arguments of functions for programs: the words of the command line, checked, each mistake with a hint.

A value may be written as a command line has it (``"nr_requests=64"``) or as Python has it
(``{"nr_requests": 64}``). The functions here turn both into the form of a description.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import ParamSpec, TypeVar, get_args

from pydantic import ValidationError

from blklab.errors import BlklabError, UsageError, did_you_mean
from blklab.quantities.formatting import join_names
from blklab.quantities.units import parse_fraction
from blklab.spec.argument_words import in_arguments
from blklab.spec.changes import ChangeTable
from blklab.spec.forms import parse_assignments, parse_group_assignments
from blklab.spec.machines import Machine
from blklab.spec.mistakes import first_mistake

Setting = str | int | float | bool
Text = str | os.PathLike[str]
Texts = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Settings = Mapping[str, Setting] | str | Iterable[str]
"""``{"nr_requests": 64}``, ``"nr_requests=64"``, or a list of such texts."""
GroupSettings = Mapping[str, Mapping[str, Setting]] | str | Iterable[str]
"""``{"batch": {"io.weight": 50}}``, ``"batch:io.weight=50"``, or a list of such texts."""
WrittenChanges = str | Iterable[str | Mapping[str, object]]
"""``"10s nr_requests=32"``, or a list of such texts and of tables as in a description."""
Costs = str | os.PathLike[str] | Machine
"""A cost table: its name, its file, or the table itself."""

_LONGEST_VALUE = 60

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def checked(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Makes a call with unknown, missing or superfluous arguments a `UsageError`.

    Mistakes that the function itself finds get a hint if they have none. Errors name arguments, not flags.
    """
    signature = inspect.signature(function)
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _wrong_call(name, signature, kwargs.keys(), str(error)) from None
        try:
            return function(*args, **kwargs)
        except BlklabError as error:
            error.reword(functools.partial(in_arguments, known=list(signature.parameters)))
            if isinstance(error, UsageError):
                error.hint = error.hint or f"help(blklab.{name}) describes the arguments"
            raise

    return call


def _wrong_call(name: str, signature: inspect.Signature, given: Iterable[str], said: str) -> UsageError:
    known = [one for one in signature.parameters if one != "self"]
    for word in given:
        if word not in known:
            # As a flag, which may be an option of the guest: guest={'filesystem': …}.
            flag = f"--{word.replace('_', '-')}"
            other = in_arguments(flag, known)
            question = did_you_mean(word, known) if other == flag else f"did you mean {other}?"
            return UsageError(
                f"{name}() has no argument {word!r}", hint=question or f"it takes {join_names(known)}"
            )
    return UsageError(f"{name}(): {said}", hint=f"help(blklab.{name}) describes the arguments")


def text_of(name: str, value: object, example: str) -> str:
    """A text, or the path of a file as one.

    Raises:
        UsageError: for anything else.
    """
    if isinstance(value, str | os.PathLike):
        return str(os.fspath(value))
    raise wrong_value(name, value, "text", f"write it like {example}")


def texts_of(name: str, value: object, example: str) -> list[str]:
    """A list of texts; a single one is a list of one.

    Raises:
        UsageError: for anything else.
    """
    if isinstance(value, str | os.PathLike):
        return [str(os.fspath(value))]
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        listed = list(value)
        if all(isinstance(one, str | os.PathLike) for one in listed):
            return [str(os.fspath(one)) for one in listed]
    raise wrong_value(name, value, "a text or a list of texts", f"write it like {example}")


def settings_of(name: str, value: object, example: str) -> dict[str, str]:
    """Settings by name.

    Raises:
        UsageError: for what is neither a dict of settings nor texts such as ``KEY=VALUE``.
    """
    if isinstance(value, Mapping):
        return {_key(name, key): _setting_text(f"{name}[{key!r}]", one) for key, one in value.items()}
    return _with_example(parse_assignments, texts_of(name, value, example), name, example)


def group_settings_of(name: str, value: object, example: str) -> dict[str, dict[str, str]]:
    """Settings of control groups by the group's name.

    Raises:
        UsageError: for what is neither a dict of dicts nor texts such as ``GROUP:KEY=VALUE``.
    """
    if isinstance(value, Mapping):
        return {_key(name, key): settings_of(f"{name}[{key!r}]", one, example) for key, one in value.items()}
    return _with_example(parse_group_assignments, texts_of(name, value, example), name, example)


def changes_of(value: object) -> list[str | ChangeTable]:
    """Changes as a description has them.

    Raises:
        UsageError: for what is neither a text nor a table.
    """
    hint = "write them like ['10s nr_requests=32', '20s scheduler=kyber']"
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise wrong_value("changes", value, "a text or a list of changes", hint)
    listed: list[str | ChangeTable] = []
    for one in value:
        if isinstance(one, Mapping):
            listed.append(_change_table(one))
        elif isinstance(one, str | ChangeTable):
            listed.append(one)
        else:
            raise wrong_value("changes", one, "a text or a table", hint)
    return listed


def _change_table(table: Mapping[str, object]) -> ChangeTable:
    try:
        return ChangeTable.model_validate(dict(table))
    except ValidationError as error:
        hint = "write it like {'at': '10s', 'queue': {'nr_requests': 32}}"
        raise UsageError(f"changes: {first_mistake(error)}", hint=hint) from error


def _setting_text(name: str, value: object) -> str:
    """A setting as sysfs takes it: True is 1.

    Raises:
        UsageError: for what is neither text nor a number.
    """
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value)
    raise wrong_value(name, value, "text or a number", "write it like {'nr_requests': 64}")


def fraction_of(name: str, value: object) -> float:
    """A fraction below 1, as a number or in percent.

    Raises:
        UsageError: for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong_value(name, value, "a fraction", f"write it like {name}=0.05 or {name}='5%'")
    return parse_fraction(value)


def integer_of(name: str, value: object, *, least: int = 0) -> int:
    """A whole number.

    Raises:
        UsageError: for anything else, or one that is too small.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_value(name, value, "a whole number", f"write it like {name}={max(1, least)}")
    if value < least:
        raise wrong_value(name, value, f"at least {least}", f"write it like {name}={max(1, least)}")
    return value


def switch_of(name: str, value: object) -> bool:
    """True or False.

    Raises:
        UsageError: for anything else.
    """
    if not isinstance(value, bool):
        raise wrong_value(name, value, "True or False", f"write it like {name}=True")
    return value


def word_of(name: str, value: object, words: object) -> str:
    """One of the words of a `Literal`.

    Raises:
        UsageError: for anything else.
    """
    known = [str(word) for word in get_args(words)]
    if not isinstance(value, str) or value not in known:
        close = did_you_mean(value, known) if isinstance(value, str) else ""
        wanted = " or ".join(repr(word) for word in known)
        raise wrong_value(name, value, wanted, close or f"write it like {name}={known[0]!r}")
    return value


def wrong_value(name: str, value: object, wanted: str, hint: str) -> UsageError:
    """The error of a wrong argument."""
    shown = repr(value)
    if len(shown) > _LONGEST_VALUE:
        shown = f"{type(value).__name__} {shown[:_LONGEST_VALUE]}…"
    return UsageError(f"{name} must be {wanted}, not {shown}", hint=hint)


def _with_example(
    parse: Callable[[Iterable[str], str], _Result], texts: list[str], name: str, example: str
) -> _Result:
    try:
        return parse(texts, name)
    except UsageError as error:
        error.hint = error.hint or f"write it like {example}"
        raise


def _key(name: str, key: object) -> str:
    if not isinstance(key, str):
        raise wrong_value(name, key, "a dict with names as keys", "write it like {'nr_requests': 64}")
    return key
