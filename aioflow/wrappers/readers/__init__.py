"""The readers that aioflow brings: HTML, XML, JSON, CSV and text. Each is found through its entry point."""
