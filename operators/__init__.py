"""The operator library, imported as `aioflow.operators`. A family is imported when one of its operators is
used.
"""

from aioflow.authoring.operator import registry

FAMILIES = {
    "crawling": ("allowed", "near_duplicates", "normalize_url", "seed", "seen"),
    "databases": ("dbappend", "dbexport", "dbimport", "dbquery", "dbupdate"),
    "differences": ("diff",),
    "email": ("email",),
    "fetching": ("content_filter", "download", "extract_links", "extract_text", "soft_404_filter"),
    "files": ("read", "write"),
    "functions": ("aggregate", "apply"),
    "grammars": ("parse",),
    "hidden": ("crawl_hidden",),
    "nesting": ("format", "pack", "unpack"),
    "notifications": ("notify", "phone"),
    "relational": ("distinct", "join", "project", "select"),
    "routing": ("emit", "limit", "log", "null", "sample", "sort"),
    "scheduling": ("schedule", "unschedule"),
    "sets": ("intersect", "minus", "union"),
    "storing": ("store",),
    "web": ("wrapper",),
    "windows": ("window",),
    "xml": ("rel2xml", "xml2rel"),
    "xquery": ("xquery", "xslt"),
}

for family, names in FAMILIES.items():
    registry.expect(f"aioflow.operators.{family}", *names)
