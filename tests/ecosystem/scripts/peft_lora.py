"""LoRA adapters of peft on a small language model, with gradient checkpointing and prompts masked by -100."""
import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, LlamaConfig, get_linear_schedule_with_warmup

lr = 3e-3
num_epochs = 2
batch_size = 8
device = "cuda" if torch.cuda.is_available() else "cpu"

torch.manual_seed(3)
g = torch.Generator().manual_seed(3)


def preprocess(size):
    samples = []
    for _ in range(size):
        prompt = torch.randint(3, 48, (6,), generator=g)
        n = int(torch.randint(2, 6, (1,), generator=g))
        answer = prompt[:n]
        ids = torch.zeros(12, dtype=torch.long)
        labels = torch.full((12,), -100)
        ids[:6], ids[6 : 6 + n] = prompt, answer
        labels[6 : 6 + n] = answer
        samples.append({"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels})
    return samples


train_dataloader = DataLoader(preprocess(64), shuffle=True, batch_size=batch_size)
eval_dataloader = DataLoader(preprocess(16), batch_size=batch_size)

config = LlamaConfig(
    vocab_size=48, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
    max_position_embeddings=32,
)
model = AutoModelForCausalLM.from_config(config)
peft_config = LoraConfig(task_type=TaskType.CAUSAL_LM, r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["q_proj", "v_proj"])
model = get_peft_model(model, peft_config)
model.print_trainable_parameters()
model = model.to(device)

optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
lr_scheduler = get_linear_schedule_with_warmup(
    optimizer=optimizer, num_warmup_steps=0, num_training_steps=(len(train_dataloader) * num_epochs)
)

for epoch in range(num_epochs):
    model.train()
    total_loss = 0
    for step, batch in enumerate(train_dataloader):
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        total_loss += loss.detach().float()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()

    model.eval()
    eval_loss = 0
    for step, batch in enumerate(eval_dataloader):
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = model(**batch)
        eval_loss += outputs.loss.detach().float()
    eval_epoch_loss = eval_loss / len(eval_dataloader)
    eval_ppl = torch.exp(eval_epoch_loss)
    train_epoch_loss = total_loss / len(train_dataloader)
    print(f"{epoch=}: {train_epoch_loss=} {eval_epoch_loss=} {eval_ppl=}")

model.save_pretrained("adapter")
