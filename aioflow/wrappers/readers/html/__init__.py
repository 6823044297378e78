"""The HTML reader: CSS selectors and XPath over a page that Lexbor parses."""
