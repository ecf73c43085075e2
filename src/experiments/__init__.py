"""Run, measure, compare and report experiments on finding and grading scholarly papers."""
