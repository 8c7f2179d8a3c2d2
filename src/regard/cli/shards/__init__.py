"""Many files, wherever fsspec opens them, translated into a folder: by this process or by many.

    shards/*.zh.gz -> chunks of lines -> said, in any order, by anyone -> out/*.en

Chunks are cut at the same lines as in `bulk.py`, so the output is the same. They come back in any
order, and some of them twice where a machine was lost; each is written once, in its place.

    out/translation.json   what was asked; a translation goes on only as it began
    out/a.en.part          of a shard that is not finished (elsewhere, if `out` is no local folder)
    out/a.en               whole, or not there
"""
