"""Passes: functions from Graph to Graph that keep its meaning. One file a family; pipeline.py puts them in order."""
