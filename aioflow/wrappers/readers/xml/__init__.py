"""The XML reader: XPath 1.0, items read while the page arrives."""
