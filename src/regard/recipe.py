"""From a recipe to settings: a TOML file, overrides laid over it, checked, and frozen once.

table  = TOML file  <-  section.name=value overrides
Config = every name known, every value of its type, every combination possible
"""

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from regard.config import Config, DataConfig, ModelConfig, Section, TrainConfig
from regard.errors import ConfigError
from regard.settings import read_toml, shown, toml_value, type_fault, unknown


def read_config(path: Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """The settings of a TOML file, or the defaults, with `section.name=value` laid over them."""
    return config_from_table(config_table(path, overrides))


def config_table(
    path: Path | None = None,
    overrides: Iterable[str] = (),
    under: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The same as nested dictionaries, unchecked, so that more can be laid under or over them."""
    table: dict[str, Any] = {name: _copied(section) for name, section in (under or {}).items()}
    for name, section in (read_toml(path) if path else {}).items():
        merges = isinstance(section, dict) and isinstance(table.get(name), dict)
        table[name] = {**table[name], **section} if merges else section
    for override in overrides:
        name, separator, value = override.partition("=")
        section, dot, setting = name.strip().partition(".")
        if not (separator and dot and section and setting):
            raise ConfigError(
                'override "{override}" is not of the form section.name=value, '
                "such as model.n_layers=3",
                override=override,
            )
        table.setdefault(section, {})
        if isinstance(table[section], dict):
            table[section][setting] = toml_value(value.strip())
    return table


def _copied(section: Any) -> Any:
    return dict(section) if isinstance(section, Mapping) else section


def config_from_table(table: Mapping[str, Any]) -> Config:
    """A Config from nested dictionaries; everything that is wrong with them is said at once."""
    sections = {f.name: f for f in fields(Config)}
    faults = [unknown(name, sections) for name in table if name not in sections]
    made: dict[str, Any] = {}
    for name in filter(table.__contains__, sections):
        if found := _section_faults(name, table[name]):
            faults += found
            continue
        try:
            made[name] = _section(name, table[name])
        except ConfigError as error:  # values that cannot be, alone or together
            faults.append(error)
    if faults:
        raise ConfigError("{faults}", faults=tuple(faults))
    return Config(**made)


def _section_class(section: str) -> type[Section]:
    classes: dict[str, type[Section]] = {
        "model": ModelConfig,
        "data": DataConfig,
        "train": TrainConfig,
    }
    return classes[section]


def _section(section: str, values: Mapping[str, Any]) -> Section:
    frozen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return _section_class(section)(**frozen)


def _section_faults(section: str, values: Any) -> list[ConfigError]:
    if not isinstance(values, dict):
        return [
            ConfigError(
                "{section} = {value} must be a section of settings, [{section}]",
                section=section,
                value=shown(values),
            )
        ]
    known: dict[str, Field[Any]] = {
        f"{section}.{f.name}": f for f in fields(_section_class(section))
    }
    faults = []
    for name, value in values.items():
        full = f"{section}.{name}"
        if full not in known:
            faults.append(unknown(full, known))
        elif fault := type_fault(full, known[full].type, value):
            faults.append(fault)
    return faults
