"""Asking sources: one HTTP client, walks over pages, look-ups, and the store of everything that was answered."""
