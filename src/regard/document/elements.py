"""The elements of HTML, by what they mean to a translator."""


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


VOID = _named("area base br col embed hr img input link meta param source track wbr")
"""They have no end."""

RAW = _named("script style xmp iframe noembed noframes plaintext")
"""What is in them is no markup."""

CODE = _named("code kbd samp var tt pre math svg textarea")
"""What is in them is no language."""

UNSEEN = _named("script style template")
"""They show nothing."""

INLINE = _named(
    "a abbr acronym b bdi bdo big c cite code data del dfn em font i ins kbd label lang map mark "
    "math meter object output picture progress q rb rp rt rtc ruby s samp small span strike strong "
    "sub sup svg time tt u v var"
)
"""They stand within a sentence; c, v and lang are those of subtitles."""

BLOCKS = _named(
    "address article aside blockquote body br button caption center dd details dialog dir div dl "
    "dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend "
    "li main menu nav ol optgroup option p search section select summary table tbody td tfoot th "
    "thead title tr ul"
)
"""No sentence crosses their tags."""
