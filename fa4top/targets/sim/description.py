from fa4top.records import Shape
from fa4top.targets.base import Description
DESCRIPTION = Description("sim","","fa4top.targets.sim.launch:make_launcher",(),Shape(1,8192,8192,24,24,128,128),("numpy",),True,lambda a,b,c:None)
