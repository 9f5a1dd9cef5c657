"""Files of tables: one reader for all of them, which reads each record by itself."""
