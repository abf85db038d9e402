"""A server under load: rates and times of whole calls, beside servers that people would write or take instead."""
