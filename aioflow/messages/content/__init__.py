"""The content of messages: tables, templates, attachments, short texts."""
