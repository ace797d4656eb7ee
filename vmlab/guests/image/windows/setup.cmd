@echo off
rem Makes a fresh Windows Server a guest of vmlab, and powers it off. It stays on where something is missing.
cd /d "%~dp0"
pnputil /add-driver drivers\*.inf /subdirs /install
for %%p in (*.msi) do msiexec /i "%%p" /qn /norestart
sc query sshd >nul
if errorlevel 1 goto missing
sc config sshd start= auto
net start sshd
if not exist "%ProgramData%\ssh" mkdir "%ProgramData%\ssh"
copy /y administrators_authorized_keys "%ProgramData%\ssh\administrators_authorized_keys"
if errorlevel 1 goto missing
attrib -r "%ProgramData%\ssh\administrators_authorized_keys"
rem sshd takes the file only where nobody but administrators (S-1-5-32-544) and the system (S-1-5-18) may write to it.
icacls "%ProgramData%\ssh\administrators_authorized_keys" /inheritance:r /grant *S-1-5-32-544:F /grant *S-1-5-18:F
netsh advfirewall firewall add rule name=vmlab-ssh dir=in action=allow protocol=TCP localport=22 profile=any
shutdown /s /t 0
exit /b 0
:missing
echo vmlab: OpenSSH Server is not here (give its .msi with --msi), or takes no key
pause
exit /b 1
