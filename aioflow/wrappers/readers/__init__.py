"""The readers that come with aioflow: HTML, XML, JSON, CSV and text. Entry points name them."""
