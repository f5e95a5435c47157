"""Results as JSON documents for machines."""
