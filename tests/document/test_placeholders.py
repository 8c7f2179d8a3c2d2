"""What is a placeholder, and what only looks like one."""

import pytest

from regard.document.placeholders import count_placeholders, is_message_format, is_placeholder


@pytest.mark.parametrize(
    "one",
    ["%s", "%d", "%1$s", "%.2f", "%-10s", "%05d", "%ld", "%@", "%%", "%1", "%(name)s", "%(n)d",
     "%{x}", "{0}", "{}", "{name}", "{user.name}", "{x:>10}", "{{x}}", "{{ user.name }}",
     "{% if x %}", "${x}", "#{x}", "[[x]]", "https://example.com/a?b=c%20d#e", "tom@example.com"],
)  # fmt: skip
def test_each_of_these_is_one_and_is_found_whole_in_a_sentence(one):
    assert is_placeholder(one)
    assert count_placeholders(f"看 {one} 吧，好 {one}。") == {one: 2}


@pytest.mark.parametrize(
    "text",
    ["100 % sure", "50% discount", "a {b c} d", "{ }", "set {1, 2}", "$5", "#1", "a@b", "[x]", "5%",
     "http://", "{'a': 1}"],
)  # fmt: skip
def test_none_of_these_is_one(text):
    assert not count_placeholders(text)


def test_messages_with_branches_are_programs():
    assert is_message_format("{n, plural, one {# file} other {# files}}")
    assert is_message_format("Hi {gender, select, male {him} other {them}}")
    assert not is_message_format("{a}, plural, {b}")
