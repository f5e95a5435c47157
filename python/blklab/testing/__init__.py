"""Shipped with blklab: conformance classes and makers of test material, for tests here and elsewhere."""
