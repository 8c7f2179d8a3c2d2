"""Text to scores: how good translations are, with all that is needed to say it honestly."""

from regard.evaluate.bootstrap import Estimate, compare
from regard.evaluate.metrics import Score, bleu, chrf, exact_match, scores, ter
from regard.evaluate.outputs import Bucket, Outputs, by_length, examine
from regard.evaluate.report import Report, Run, System, as_json, as_markdown, as_table, report_on

__all__ = [
    "Bucket",
    "Estimate",
    "Outputs",
    "Report",
    "Run",
    "Score",
    "System",
    "as_json",
    "as_markdown",
    "as_table",
    "bleu",
    "by_length",
    "chrf",
    "compare",
    "exact_match",
    "examine",
    "report_on",
    "scores",
    "ter",
]
