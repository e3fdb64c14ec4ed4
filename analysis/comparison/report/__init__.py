"""What a comparison says: claims, tables, pictures, its section of the report."""
