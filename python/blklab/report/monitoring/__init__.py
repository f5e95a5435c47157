"""Results for other programs' dashboards: OpenMetrics text for monitoring, JUnit XML for CI."""
