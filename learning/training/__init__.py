"""Training of agents, whatever they learn by: ``loop`` plays episodes, ``records`` logs, ``agent_files`` stores."""
