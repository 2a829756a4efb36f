"""The policies of a campaign: what a worker may do, each a lane of the scheduler.

Each module has one lane (`fuzz.campaign.scheduler.Lane`): what waits in it, whether there is time
for it (`fuzz.campaign.shares`), and how it is done. No lane knows the engine. The order in which
workers take work from them is in `fuzz.campaign.engine`.
"""
