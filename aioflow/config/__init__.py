"""Settings: the tables that services declare, the values in force, secrets and folders."""
