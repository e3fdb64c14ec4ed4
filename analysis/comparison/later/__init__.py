"""What training longer changes within one comparison."""
