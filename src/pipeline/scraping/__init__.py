"""Open pages and PDFs of papers, read where that is safe: what they say of abstract and keywords."""
