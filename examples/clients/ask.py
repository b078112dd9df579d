from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8080/v1", api_key="none is needed on this machine")
answer = client.completions.create(model="stories260K", prompt="Once upon a time", max_tokens=30, temperature=0, stream=True)
for piece in answer:
    print(piece.choices[0].text, end="", flush=True)
print()
