NETS = {}


def register(name):
    def keep(cls):
        NETS[name] = cls
        return cls

    return keep


def build_net(name, **kwargs):
    return NETS[name](**kwargs)
