"""What the conditional random field of pytorch-crf computes, and how it depends on a batch. Checked on pytorch-crf 0.7.2."""

import torch
import torch.nn as nn


class CRF(nn.Module):
    def __init__(self, num_tags, batch_first=False):
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.uniform_(self.start_transitions, -0.1, 0.1)
        nn.init.uniform_(self.end_transitions, -0.1, 0.1)
        nn.init.uniform_(self.transitions, -0.1, 0.1)

    def forward(self, emissions, tags, mask=None, reduction="sum"):
        if mask is None:
            mask = torch.ones_like(tags)
        if not self.batch_first:
            emissions, tags, mask = emissions.transpose(0, 1), tags.transpose(0, 1), mask.transpose(0, 1)
        each = self.of_tags(emissions, tags, mask) - self.of_all_tags(emissions, mask)
        if reduction == "none":
            return each
        if reduction == "sum":
            return each.sum()
        if reduction == "mean":
            return each.mean()
        return each.sum() / mask.float().sum()

    def of_tags(self, emissions, tags, mask):
        own = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        steps = (self.transitions[tags[:, :-1], tags[:, 1:]] + own[:, 1:]) * mask[:, 1:].float()
        last = tags.gather(1, mask.long().sum(1).unsqueeze(1) - 1).squeeze(1)
        return self.start_transitions[tags[:, 0]] + own[:, 0] + steps.sum(1) + self.end_transitions[last]

    def of_all_tags(self, emissions, mask):
        score = self.start_transitions + emissions[:, 0]
        for step in range(1, emissions.size(1)):
            following = torch.logsumexp(score.unsqueeze(2) + self.transitions + emissions[:, step].unsqueeze(1), dim=1)
            score = torch.where(mask[:, step].unsqueeze(1).bool(), following, score)
        return torch.logsumexp(score + self.end_transitions, dim=1)

    def decode(self, emissions, mask=None):
        if mask is None:
            mask = torch.ones(emissions.shape[:2], device=emissions.device)
        if not self.batch_first:
            emissions, mask = emissions.transpose(0, 1), mask.transpose(0, 1)
        return [self.best_tags(scores, int(length)) for scores, length in zip(emissions, mask.long().sum(1))]

    def best_tags(self, scores, length):
        score, best = self.start_transitions + scores[0], []
        for step in range(1, length):
            score, before = (score.unsqueeze(1) + self.transitions + scores[step]).max(0)
            best.append(before)
        tags = [int((score + self.end_transitions).argmax())]
        for before in reversed(best):
            tags.insert(0, int(before[tags[0]]))
        return tags
