"""The commands, one file each. `aioflow.cli.app` lists them and says how to add one."""
