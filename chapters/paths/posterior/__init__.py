"""Cells whose answer is a posterior: deep attention networks in theory and by sampling."""
