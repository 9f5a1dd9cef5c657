"""Durable ledgers under load and under faults."""
